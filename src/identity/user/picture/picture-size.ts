/** Maximum number of scans of a JPEG. Each is a pass over all pixels; a progressive photograph has about ten. */
const SCANS_LIMIT = 40

const ascii = (text: string) => Buffer.from(text, 'latin1')
const PNG = ascii('\x89PNG\r\n\x1a\n')
const JPEG = ascii('\xff\xd8\xff')
const SCAN = ascii('\xff\xda')

const startsWith = (bytes: Buffer, head: Buffer, at = 0) => bytes.subarray(at, at + head.length).equals(head)

/**
 * The number of pixels that the head of a PNG, JPEG or WebP announces, the largest where there are several images in it;
 * undefined for other bytes, for a head that is cut, and for a JPEG of too many scans. Decodes nothing; linear. Pure.
 */
export function readPixels(bytes: Buffer): number | undefined {
  try {
    if (startsWith(bytes, PNG)) return readPng(bytes)
    if (startsWith(bytes, JPEG)) return readJpeg(bytes)
    if (startsWith(bytes, ascii('RIFF')) && startsWith(bytes, ascii('WEBP'), 8)) return readWebp(bytes)
  } catch (error) {
    // A read beyond the end: the head is cut.
    if (!(error instanceof RangeError)) throw error
  }
  return undefined
}

/** The chunk `IHDR` comes first (PNG specification, section 5.6). */
function readPng(bytes: Buffer): number | undefined {
  return startsWith(bytes, ascii('IHDR'), 12) ? bytes.readUInt32BE(16) * bytes.readUInt32BE(20) : undefined
}

/**
 * The segments that may stand before a frame header: tables, the interval of restarts, data of applications, comments. Of
 * other markers decoders disagree whether a length follows: a frame could hide behind one.
 */
function isBeforeFrame(marker: number): boolean {
  return [0xc4, 0xcc, 0xdb, 0xdd, 0xfe].includes(marker) || (marker >= 0xe0 && marker <= 0xef)
}

/** The first frame header (ITU-T T.81, table B.1), where every segment before it follows the one before. */
function readJpeg(bytes: Buffer): number | undefined {
  if (countScans(bytes) > SCANS_LIMIT) return undefined
  let at = 2
  while (at < bytes.length) {
    if (bytes[at] !== 0xff) return undefined
    while (bytes[at + 1] === 0xff) at += 1
    const marker = bytes.readUInt8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return bytes.readUInt16BE(at + 5) * bytes.readUInt16BE(at + 7)
    if (!isBeforeFrame(marker)) return undefined
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

function countScans(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(SCAN); at >= 0; at = bytes.indexOf(SCAN, at + 2)) count += 1
  return count
}

/** The canvas and every frame (RFC 9649, sections 2.5 to 2.7): a small canvas may hold a large frame. */
function readWebp(bytes: Buffer): number | undefined {
  const sizes = [
    ...readChunks(bytes, 'VP8X', (at) => (1 + bytes.readUIntLE(at + 4, 3)) * (1 + bytes.readUIntLE(at + 7, 3))),
    ...readChunks(bytes, 'VP8 ', (at) => (bytes.readUInt16LE(at + 6) & 0x3fff) * (bytes.readUInt16LE(at + 8) & 0x3fff)),
    ...readChunks(bytes, 'VP8L', (at) => {
      const bits = bytes.readUInt32LE(at + 1)
      return (1 + (bits & 0x3fff)) * (1 + ((bits >>> 14) & 0x3fff))
    }),
  ]
  return sizes.length === 0 ? undefined : Math.max(...sizes)
}

/** Results of `read` at the data of each chunk with this name. */
function readChunks(bytes: Buffer, name: string, read: (at: number) => number): number[] {
  const sizes = []
  for (let at = bytes.indexOf(name, 12, 'latin1'); at >= 0; at = bytes.indexOf(name, at + 4, 'latin1'))
    sizes.push(read(at + 8))
  return sizes
}
