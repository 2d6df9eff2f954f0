"""Install into clients: the exact change is shown, kept and can be taken back byte for byte."""
