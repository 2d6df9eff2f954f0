"""Install into clients: the exact change is shown, recorded and can be reverted byte for byte."""
