-- One row: the secret of the store, and a counter of removals.
CREATE TABLE trimtab.store (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    secret bytea NOT NULL,
    removals bigint NOT NULL DEFAULT 0
);

-- Names and labels are bytea, because text cannot hold every character of a Rust string.
CREATE TABLE trimtab.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name bytea NOT NULL UNIQUE,
    secret bytea NOT NULL,
    -- Removing a parent leaves its children without one.
    parent bigint REFERENCES trimtab.sessions (id) ON DELETE SET NULL,
    -- The root of its tree when the session joined it. Equal bytes are stored once per owner.
    owner bigint NOT NULL,
    created bigint NOT NULL,
    used bigint NOT NULL,
    leased_until bigint NOT NULL DEFAULT 0,
    -- The number of outputs so far, and the positions of the log and the journal.
    puts bigint NOT NULL DEFAULT 0,
    log bigint NOT NULL DEFAULT 0,
    journal bigint NOT NULL DEFAULT 0,
    -- The stored size of the log and the journal.
    entry_bytes bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_parent ON trimtab.sessions (parent) WHERE parent IS NOT NULL;

-- The bytes of an output, compressed, with the outline that proves them.
CREATE TABLE trimtab.blobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner bigint NOT NULL,
    digest bytea NOT NULL,
    byte_size bigint NOT NULL,
    newlines bigint NOT NULL,
    stored_size bigint NOT NULL,
    outline bytea NOT NULL,
    -- The image: rows of `chunks`, or an object in the object store.
    body text COLLATE "C" NOT NULL UNIQUE,
    in_object_store boolean NOT NULL,
    UNIQUE (owner, digest)
);

-- Images in the database, in pieces of a bounded size.
CREATE TABLE trimtab.chunks (
    body text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    created bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (body, number)
);
-- Images are already compressed.
ALTER TABLE trimtab.chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE trimtab.outputs (
    session bigint NOT NULL REFERENCES trimtab.sessions (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    whole bigint NOT NULL REFERENCES trimtab.blobs (id),
    text bigint REFERENCES trimtab.blobs (id),
    call bytea NOT NULL,
    tool bytea NOT NULL,
    media_type bytea NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX outputs_whole ON trimtab.outputs (whole);
CREATE INDEX outputs_text ON trimtab.outputs (text) WHERE text IS NOT NULL;

-- Logs (stream 0) and journals (stream 1).
CREATE TABLE trimtab.entries (
    session bigint NOT NULL REFERENCES trimtab.sessions (id) ON DELETE CASCADE,
    stream smallint NOT NULL,
    position bigint NOT NULL,
    -- The size before compression; null if the entry is not compressed.
    byte_size bigint,
    bytes bytea NOT NULL,
    PRIMARY KEY (session, stream, position)
);
ALTER TABLE trimtab.entries ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Work on a session that one process does for all of them, for example a summary.
CREATE TABLE trimtab.claims (
    session bytea NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    holder bytea NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (session, purpose)
);

-- Creates the session if it is new, marks it as used, and locks its row, so that writers of one
-- session take turns. `known_secret` is the secret that the caller named outputs with. A session
-- that was removed and created again has another one.
CREATE FUNCTION trimtab.use_session(
    session_name bytea, new_secret bytea, known_secret bytea, at_time bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_secret bytea;
BEGIN
    UPDATE trimtab.sessions SET used = greatest(used, at_time)
        WHERE name = session_name RETURNING secret INTO found_secret;
    IF NOT FOUND THEN
        INSERT INTO trimtab.sessions (name, secret, owner, created, used)
            VALUES (session_name, new_secret, 0, at_time, at_time)
            ON CONFLICT (name) DO UPDATE SET used = greatest(sessions.used, excluded.used)
            RETURNING secret INTO found_secret;
        UPDATE trimtab.sessions SET owner = id WHERE name = session_name AND owner = 0;
    END IF;
    IF known_secret IS NOT NULL AND known_secret <> found_secret THEN
        RAISE EXCEPTION 'the session was removed' USING ERRCODE = 'TT002';
    END IF;
END $$;

-- Appends entries if the stream is at the expected position.
CREATE FUNCTION trimtab.append_entries(
    session_name bytea, to_stream smallint, expected bigint, sizes bigint[], contents bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    session_id bigint;
    at_position bigint;
    added_bytes bigint;
BEGIN
    SELECT id, CASE WHEN to_stream = 0 THEN log ELSE journal END
        INTO STRICT session_id, at_position FROM trimtab.sessions WHERE name = session_name;
    IF at_position <> expected THEN
        RAISE EXCEPTION '% %', to_stream, at_position USING ERRCODE = 'TT001';
    END IF;
    INSERT INTO trimtab.entries (session, stream, position, byte_size, bytes)
        SELECT session_id, to_stream, expected + entry.number - 1, entry.size, entry.content
        FROM unnest(sizes, contents) WITH ORDINALITY AS entry (size, content, number);
    SELECT coalesce(sum(octet_length(content)), 0) INTO added_bytes
        FROM unnest(contents) AS content;
    at_position := expected + cardinality(contents);
    UPDATE trimtab.sessions SET
        log = CASE WHEN to_stream = 0 THEN at_position ELSE log END,
        journal = CASE WHEN to_stream = 1 THEN at_position ELSE journal END,
        entry_bytes = entry_bytes + added_bytes
        WHERE id = session_id;
END $$;

-- Ensures that the tree of `session_name` has a blob with these bytes. Returns the name of its
-- body. If the tree has equal bytes already, that is another one than `new_body`, which the caller
-- then removes. `chunk` is the image if it is small; a larger one is already stored under
-- `new_body`.
CREATE FUNCTION trimtab.hold_blob(
    session_name bytea, blob_digest bytea, size bigint, lines bigint, stored bigint,
    blob_outline bytea, new_body text, is_object boolean, chunk bytea, at_time bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    tree bigint;
    kept_body text;
BEGIN
    SELECT owner INTO STRICT tree FROM trimtab.sessions WHERE name = session_name;
    -- The lock prevents collection from removing the blob before an output names it.
    SELECT body INTO kept_body FROM trimtab.blobs
        WHERE owner = tree AND digest = blob_digest FOR KEY SHARE;
    IF FOUND THEN
        RETURN kept_body;
    END IF;
    INSERT INTO trimtab.blobs
            (owner, digest, byte_size, newlines, stored_size, outline, body, in_object_store)
        VALUES (tree, blob_digest, size, lines, stored, blob_outline, new_body, is_object)
        ON CONFLICT (owner, digest) DO UPDATE SET digest = excluded.digest
        RETURNING body INTO kept_body;
    IF chunk IS NOT NULL AND kept_body = new_body THEN
        INSERT INTO trimtab.chunks (body, number, created, bytes)
            VALUES (new_body, 0, at_time, chunk);
    END IF;
    RETURN kept_body;
END $$;

-- Names an output whose blobs are held, unless the session has it already.
CREATE FUNCTION trimtab.name_output(
    session_name bytea, output_id text, whole_digest bytea, text_digest bytea,
    of_call bytea, of_tool bytea, of_media_type bytea, at_time bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    holder trimtab.sessions;
BEGIN
    SELECT * INTO STRICT holder FROM trimtab.sessions WHERE name = session_name;
    IF EXISTS (SELECT FROM trimtab.outputs WHERE session = holder.id AND id = output_id) THEN
        RETURN;
    END IF;
    UPDATE trimtab.sessions SET puts = puts + 1 WHERE id = holder.id;
    INSERT INTO trimtab.outputs
            (session, id, number, whole, text, call, tool, media_type, created)
        SELECT holder.id, output_id, holder.puts + 1, whole_blob.id, text_blob.id,
            of_call, of_tool, of_media_type, at_time
        FROM trimtab.blobs AS whole_blob LEFT JOIN trimtab.blobs AS text_blob
            ON text_blob.owner = holder.owner AND text_blob.digest = text_digest
        WHERE whole_blob.owner = holder.owner AND whole_blob.digest = whole_digest;
END $$;
