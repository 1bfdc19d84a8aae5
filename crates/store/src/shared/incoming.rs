//! An output on its way in: scanned, compressed, and durable before it is named.

use std::io::Read;

use super::body::{Bodies, BodyName, BodyWriter};
use crate::frames::{FRAME, Scan, Scanner};
use crate::image::{FrameWriter, Outline};
use crate::put::Input;
use crate::{Error, Result};

/// Images up to this size travel with the row that names them: one round trip for all.
const INLINE: usize = 128 * 1024;

/// An image that is ready to be named.
pub(super) struct ReadyImage {
    pub(super) scan: Scan,
    pub(super) outline: Outline,
    pub(super) body: BodyName,
    /// The whole image, if it is small.
    pub(super) inline: Option<Vec<u8>>,
}

/// Reads `input` to its end. Larger images are written to their body on the way, so that no
/// output is in memory as a whole.
pub(super) fn make_ready(bodies: &Bodies, input: Input<'_>, now: u64) -> Result<ReadyImage> {
    let mut making = Making {
        bodies,
        now,
        frames: FrameWriter::default(),
        scanner: Scanner::new(),
        writer: None,
    };
    match input {
        Input::Slice(bytes) => bytes
            .chunks(FRAME)
            .try_for_each(|frame| making.push(frame))?,
        Input::Reader(reader) => making.read(reader)?,
    }
    making.finish()
}

struct Making<'b> {
    bodies: &'b Bodies,
    now: u64,
    frames: FrameWriter,
    scanner: Scanner,
    writer: Option<BodyWriter>,
}

impl Making<'_> {
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
        if self.writer.is_none() && self.frames.pending.len() > INLINE {
            self.writer = Some(self.bodies.write(self.now)?);
        }
        match &mut self.writer {
            Some(writer) => writer.take(&mut self.frames.pending),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<ReadyImage> {
        let scan = self.scanner.finish();
        let outline = self.frames.finish(&scan);
        let pending = self.frames.pending;
        if self.writer.is_none() && pending.len() > INLINE {
            self.writer = Some(self.bodies.write(self.now)?);
        }
        let (body, inline) = match self.writer {
            Some(writer) => (writer.finish(pending)?, None),
            None => {
                let mut name = self.bodies.new_name()?;
                name.in_object_store = false;
                (name, Some(pending))
            }
        };
        Ok(ReadyImage {
            scan,
            outline,
            body,
            inline,
        })
    }
}
