-- What shared chats said is in a database of its own; store/split.py moves it there after these steps.
DELETE FROM session_starts WHERE private = 0;
DELETE FROM given_lines WHERE private = 0;
DELETE FROM graph_answers WHERE private = 0;
