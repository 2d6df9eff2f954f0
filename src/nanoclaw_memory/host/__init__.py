"""The operational state of a bot: chats, messages, groups, sessions, tasks."""
