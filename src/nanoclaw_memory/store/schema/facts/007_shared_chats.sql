-- What shared chats stated is in a database of its own; store/split.py moves it there after these steps.
SELECT 1;
