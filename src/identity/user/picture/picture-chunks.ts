const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/**
 * The chunks of a PNG that its pixels and their direction are made of (PNG specification, section 11). Of the others a
 * stored picture has nothing, and decoders unpack some of them: a profile of half a MiB to half a GiB.
 */
const NEEDED = new Set(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'eXIf', 'IEND'])

/** Bytes of a chunk besides its data: its length, name and checksum. */
const FRAME_BYTES = 12

/** A picture without the chunks of a PNG that it does not need, and without what follows its end. Linear. Pure. */
export function dropUnneeded(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, PNG.length).equals(PNG)) return bytes
  const kept: Buffer[] = [PNG]
  let at = PNG.length
  while (at + FRAME_BYTES <= bytes.length) {
    const end = at + FRAME_BYTES + bytes.readUInt32BE(at)
    const name = bytes.toString('latin1', at + 4, at + 8)
    if (NEEDED.has(name)) kept.push(bytes.subarray(at, end))
    if (name === 'IEND') break
    at = end
  }
  return Buffer.concat(kept)
}
