"""HOST: the operational memory of a bot: messages, groups, sessions, tasks and archives."""
