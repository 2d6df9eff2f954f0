"""SDK helpers: our memory inside agents written with other people's SDKs; each needs that SDK installed."""
