-- One row: the secret of the store, and how often something was removed from it.
CREATE TABLE store (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    secret bytea NOT NULL,
    removals bigint NOT NULL DEFAULT 0
);

CREATE TABLE sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    secret bytea NOT NULL,
    -- The session above it. Removing a parent leaves its children without one.
    parent bigint REFERENCES sessions (id) ON DELETE SET NULL,
    -- The top of the tree when the session joined it: equal bytes are kept once per owner.
    owner bigint NOT NULL,
    created bigint NOT NULL,
    used bigint NOT NULL,
    leased_until bigint NOT NULL DEFAULT 0,
    -- How many outputs it was given, and how many entries its log and journal have.
    puts bigint NOT NULL DEFAULT 0,
    log bigint NOT NULL DEFAULT 0,
    journal bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_used ON sessions (used);

-- The bytes of an output, compressed, with the outline that proves them.
CREATE TABLE blobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner bigint NOT NULL,
    digest bytea NOT NULL,
    byte_size bigint NOT NULL,
    newlines bigint NOT NULL,
    stored_size bigint NOT NULL,
    outline bytea NOT NULL,
    -- Where the image is: rows of `chunks`, or an object of the object store.
    body text NOT NULL,
    in_object_store boolean NOT NULL,
    UNIQUE (owner, digest)
);

-- Images in the database, in pieces, so that no row grows without bound.
CREATE TABLE chunks (
    body text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    created bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (body, number)
);
-- The images are compressed already, and parts of them are read.
ALTER TABLE chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE outputs (
    session bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    whole bigint NOT NULL REFERENCES blobs (id),
    text bigint REFERENCES blobs (id),
    call text NOT NULL,
    tool text NOT NULL,
    media_type text NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX outputs_whole ON outputs (whole);
CREATE INDEX outputs_text ON outputs (text) WHERE text IS NOT NULL;

-- Logs (stream 0) and journals (stream 1).
CREATE TABLE entries (
    session bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    stream smallint NOT NULL,
    position bigint NOT NULL,
    -- Size before compression; null: not compressed.
    byte_size bigint,
    bytes bytea NOT NULL,
    PRIMARY KEY (session, stream, position)
);
ALTER TABLE entries ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The session, made if it is new and marked as used. Locks its row, so that writers of one
-- session take turns. `known_secret` is what the caller has named outputs with; a session that
-- was removed and began anew has another one.
CREATE FUNCTION use_session(
    session_name text, new_secret bytea, known_secret bytea, at_time bigint
) RETURNS sessions LANGUAGE plpgsql AS $$
DECLARE
    found_session sessions;
BEGIN
    UPDATE sessions SET used = greatest(used, at_time)
        WHERE name = session_name RETURNING * INTO found_session;
    IF NOT FOUND THEN
        INSERT INTO sessions (name, secret, owner, created, used)
            VALUES (session_name, new_secret, 0, at_time, at_time)
            ON CONFLICT (name) DO UPDATE SET used = greatest(sessions.used, excluded.used)
            RETURNING * INTO found_session;
        IF found_session.owner = 0 THEN
            UPDATE sessions SET owner = id WHERE id = found_session.id
                RETURNING * INTO found_session;
        END IF;
    END IF;
    IF known_secret IS NOT NULL AND known_secret <> found_session.secret THEN
        RAISE EXCEPTION 'the session was removed' USING ERRCODE = 'TT002';
    END IF;
    RETURN found_session;
END $$;

-- Appends entries, if the stream is where the caller believes it to be.
CREATE FUNCTION append_entries(
    session_name text, to_stream smallint, expected bigint, sizes bigint[], contents bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    session_id bigint;
    at_position bigint;
BEGIN
    SELECT id, CASE WHEN to_stream = 0 THEN log ELSE journal END
        INTO STRICT session_id, at_position FROM sessions WHERE name = session_name;
    IF at_position <> expected THEN
        RAISE EXCEPTION '%', at_position USING ERRCODE = 'TT001';
    END IF;
    INSERT INTO entries (session, stream, position, byte_size, bytes)
        SELECT session_id, to_stream, expected + entry.number - 1, entry.size, entry.content
        FROM unnest(sizes, contents) WITH ORDINALITY AS entry (size, content, number);
    at_position := expected + cardinality(contents);
    IF to_stream = 0 THEN
        UPDATE sessions SET log = at_position WHERE id = session_id;
    ELSE
        UPDATE sessions SET journal = at_position WHERE id = session_id;
    END IF;
    RETURN at_position;
END $$;

-- Holds the bytes of an output for the tree of sessions that `session_name` belongs to. If the
-- tree has equal bytes already, nothing is written. Else the image that the caller made is
-- kept: `chunk` if it is small, else what was written under `new_body` before.
CREATE FUNCTION hold_blob(
    session_name text, blob_digest bytea, size bigint, lines bigint, stored bigint,
    blob_outline bytea, new_body text, is_object boolean, chunk bytea, at_time bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    tree bigint;
    blob_id bigint;
BEGIN
    SELECT owner INTO STRICT tree FROM sessions WHERE name = session_name;
    -- The lock keeps collection from removing it before the output names it.
    SELECT id INTO blob_id FROM blobs
        WHERE owner = tree AND digest = blob_digest FOR KEY SHARE;
    IF FOUND THEN
        RETURN blob_id;
    END IF;
    INSERT INTO blobs
            (owner, digest, byte_size, newlines, stored_size, outline, body, in_object_store)
        VALUES (tree, blob_digest, size, lines, stored, blob_outline, new_body, is_object)
        ON CONFLICT (owner, digest) DO UPDATE SET digest = excluded.digest
        RETURNING id INTO blob_id;
    IF chunk IS NOT NULL THEN
        INSERT INTO chunks (body, number, created, bytes)
            SELECT new_body, 0, at_time, chunk
            WHERE EXISTS (SELECT FROM blobs WHERE id = blob_id AND body = new_body);
    END IF;
    RETURN blob_id;
END $$;

-- Names an output whose bytes are held, unless the session has it already.
CREATE FUNCTION name_output(
    session_name text, output_id text, whole_digest bytea, text_digest bytea,
    of_call text, of_tool text, of_media_type text, at_time bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    holder sessions;
BEGIN
    SELECT * INTO STRICT holder FROM sessions WHERE name = session_name;
    IF EXISTS (SELECT FROM outputs WHERE session = holder.id AND id = output_id) THEN
        RETURN;
    END IF;
    UPDATE sessions SET puts = puts + 1 WHERE id = holder.id;
    INSERT INTO outputs (session, id, number, whole, text, call, tool, media_type, created)
        SELECT holder.id, output_id, holder.puts + 1, whole_blob.id, text_blob.id,
            of_call, of_tool, of_media_type, at_time
        FROM blobs AS whole_blob LEFT JOIN blobs AS text_blob
            ON text_blob.owner = holder.owner AND text_blob.digest = text_digest
        WHERE whole_blob.owner = holder.owner AND whole_blob.digest = whole_digest;
END $$;
