-- They are in forgotten.db now; store/tombstones.py copies them there before this step runs.
DROP TABLE IF EXISTS tombstones;
