-- The tables of the simulator. `transactions` is what a provider shows, `books` is what it really moved.
-- Amounts are hundredths of the main unit, times are microseconds since 1970.
CREATE TABLE IF NOT EXISTS transactions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('debit', 'credit')),
    resource TEXT NOT NULL DEFAULT '',
    operator TEXT NOT NULL,
    ref TEXT NOT NULL,
    client_ref TEXT,
    phone TEXT,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    stated_amount INTEGER,
    stated_currency TEXT,
    state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed', 'expired')),
    reason TEXT,
    parent TEXT,
    scenario TEXT NOT NULL,
    planned_state TEXT,
    planned_reason TEXT,
    due_at INTEGER,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    callback_url TEXT,
    company TEXT NOT NULL DEFAULT '',
    detail TEXT NOT NULL,
    CONSTRAINT transactions_ref UNIQUE (provider, kind, resource, ref, company)
);
CREATE INDEX IF NOT EXISTS transactions_due ON transactions (due_at) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS transactions_client ON transactions (provider, client_ref);
CREATE INDEX IF NOT EXISTS transactions_parent ON transactions (provider, parent) WHERE parent IS NOT NULL;
CREATE INDEX IF NOT EXISTS transactions_listed ON transactions (provider, operator, created_at);
CREATE TABLE IF NOT EXISTS books (
    transaction_id INTEGER PRIMARY KEY REFERENCES transactions (id),
    provider TEXT NOT NULL,
    kind TEXT NOT NULL,
    client_ref TEXT,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS callbacks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    transaction_id INTEGER NOT NULL REFERENCES transactions (id),
    event_id TEXT NOT NULL,
    claim TEXT NOT NULL,
    forged INTEGER NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    url TEXT,
    answered INTEGER,
    error TEXT
);
CREATE INDEX IF NOT EXISTS callbacks_due ON callbacks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS callbacks_transaction ON callbacks (transaction_id);
CREATE TABLE IF NOT EXISTS tokens (
    token TEXT PRIMARY KEY, provider TEXT NOT NULL, scope TEXT NOT NULL, expires_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS idempotency_keys (
    provider TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (provider, key)
);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, phone TEXT NOT NULL, body TEXT NOT NULL,
    code TEXT, used INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS forced (
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, call TEXT NOT NULL, scenario TEXT NOT NULL,
    times INTEGER, after REAL, delay REAL
);
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    status INTEGER, at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
