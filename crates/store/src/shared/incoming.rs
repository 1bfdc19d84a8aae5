//! Compresses an output and makes its bytes durable before a row names them.

use std::io::Read;

use super::bodies::{BodyName, BodyStorage, ImageBodyWriter};
use crate::frames::{FRAME, OutputScan, OutputScanner};
use crate::image::{FrameWriter, ImageOutline};
use crate::put::PutInput;
use crate::{Error, Result};

/// Images up to this size are sent with the row that names them, in one round trip.
const INLINE: usize = 128 << 10;

/// An image that a row may name now.
pub(super) struct ReadyImage {
    pub(super) scan: OutputScan,
    pub(super) outline: ImageOutline,
    pub(super) body: BodyName,
    /// The whole image if it is small. A larger one is already stored.
    pub(super) inline: Option<Vec<u8>>,
}

/// Reads `input` to its end. A large image is written while it is read, so an output is never
/// completely in memory.
pub(super) fn make_ready(
    storage: &BodyStorage,
    input: PutInput<'_>,
    now: Option<i64>,
) -> Result<ReadyImage> {
    let mut incoming = IncomingImage {
        storage,
        now,
        frames: FrameWriter::default(),
        scanner: OutputScanner::new(),
        writer: None,
    };
    match input {
        PutInput::Slice(bytes) => bytes
            .chunks(FRAME)
            .try_for_each(|frame| incoming.push(frame))?,
        PutInput::Reader(reader) => incoming.read(reader)?,
    }
    incoming.finish()
}

struct IncomingImage<'b> {
    storage: &'b BodyStorage,
    now: Option<i64>,
    frames: FrameWriter,
    scanner: OutputScanner,
    writer: Option<ImageBodyWriter>,
}

impl IncomingImage<'_> {
    fn read(&mut self, reader: &mut dyn Read) -> Result<()> {
        let mut frame = Vec::with_capacity(FRAME);
        loop {
            frame.clear();
            let mut rest = Read::take(&mut *reader, FRAME as u64);
            rest.read_to_end(&mut frame).map_err(Error::Input)?;
            if !frame.is_empty() {
                self.push(&frame)?;
            }
            if frame.len() < FRAME {
                return Ok(());
            }
        }
    }

    fn push(&mut self, frame: &[u8]) -> Result<()> {
        let scanned = self.scanner.push(frame);
        self.frames.push(frame, scanned);
        self.write_large()
    }

    fn write_large(&mut self) -> Result<()> {
        if self.writer.is_none() && self.frames.pending.len() > INLINE {
            self.storage.claim_objects()?;
            self.writer = Some(self.storage.write(self.now)?);
        }
        match &mut self.writer {
            Some(writer) => writer.take(&mut self.frames.pending),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<ReadyImage> {
        let scan = std::mem::replace(&mut self.scanner, OutputScanner::new()).finish();
        let outline = self.frames.finish(&scan);
        self.write_large()?;
        let pending = self.frames.pending;
        let (body, inline) = match self.writer {
            Some(writer) => (writer.finish(pending)?, None),
            // Small images are always in the database, even if there is an object store.
            None => (BodyStorage::new_name(false)?, Some(pending)),
        };
        Ok(ReadyImage {
            scan,
            outline,
            body,
            inline,
        })
    }
}
