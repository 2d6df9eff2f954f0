"""SDK helpers: our memory inside agents written with other SDKs; each needs that SDK installed."""
