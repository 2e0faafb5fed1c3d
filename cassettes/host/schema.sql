-- The canonical state of one host. The file is disposable: it serves one replay or one recording, nothing in it is
-- ever copied into a Cassette. Columns are the members of the rows in model.py and records.py; open objects are JSON text.
-- Order of creation is the rowid, so rows are updated in place and never replaced.

CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS commits (
  seq INTEGER PRIMARY KEY,
  txn_id TEXT NOT NULL,
  cause TEXT NOT NULL,
  cause_ref TEXT NOT NULL,
  at_ms INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  root_session_id TEXT NOT NULL,
  root_turn_id TEXT NOT NULL,
  parent_session_id TEXT NOT NULL,
  parent_turn_id TEXT NOT NULL,
  parent_tool_call_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  agent_target_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  provider_session_id TEXT NOT NULL,
  model TEXT NOT NULL,
  settings TEXT NOT NULL,
  provider_resume_checkpoint TEXT NOT NULL,
  cwd TEXT NOT NULL,
  rail_section_kind TEXT NOT NULL,
  rail_project_path TEXT NOT NULL,
  rail_section_key TEXT NOT NULL,
  title TEXT NOT NULL,
  active_turn_id TEXT NOT NULL,
  pinned INTEGER NOT NULL,
  message_version INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS turns (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  phase TEXT NOT NULL,
  outcome TEXT NOT NULL,
  origin TEXT NOT NULL,
  capability_refs TEXT NOT NULL,
  error TEXT NOT NULL,
  file_changes TEXT NOT NULL,
  completed_command TEXT NOT NULL,
  source_goal_operation_id TEXT NOT NULL,
  source_goal_revision INTEGER NOT NULL,
  source_goal_repair_epoch INTEGER NOT NULL,
  root_provider_turn_id TEXT NOT NULL,
  provider_phase TEXT NOT NULL,
  provider_outcome TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  settled_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, id)
);

CREATE TABLE IF NOT EXISTS messages (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  role TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  semantics TEXT NOT NULL,
  payload TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_seq INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, id)
);

CREATE TABLE IF NOT EXISTS interactions (
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  input TEXT NOT NULL,
  output TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, turn_id, request_id)
);

CREATE TABLE IF NOT EXISTS goals (
  session_id TEXT NOT NULL PRIMARY KEY,
  desired TEXT NOT NULL,
  observed TEXT NOT NULL,
  revision INTEGER NOT NULL,
  tombstoned INTEGER NOT NULL,
  sync_status TEXT NOT NULL,
  pending_operation_id TEXT NOT NULL,
  last_evidence TEXT NOT NULL,
  last_error TEXT NOT NULL
);

-- Needed to know what is settled and to apply effects; never captured.
CREATE TABLE IF NOT EXISTS operations (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  payload TEXT NOT NULL,
  result TEXT NOT NULL,
  error TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS submits (
  session_id TEXT NOT NULL,
  client_submit_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  state TEXT NOT NULL,
  guidance INTEGER NOT NULL,
  PRIMARY KEY (session_id, client_submit_id)
);

-- Tutti Mode, Workflows and Issues: the host stores them whole.
CREATE TABLE IF NOT EXISTS products (
  domain TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (domain, id)
);
