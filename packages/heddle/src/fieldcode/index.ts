/** What HPACK and QPACK share: Huffman code, prefix integers, field lines and their sections. */
export { Entry, isSensitive, Kind, kindOfLine, kindOfName } from './entry.ts'
export { huffmanLength, maxDecodedLength, readHuffman, writeHuffman } from './huffman.ts'
export { IntegerReader, tooLarge, truncated, writeInteger } from './integer.ts'
export { InternCache, uncached, undecodable } from './intern-cache.ts'
export { SectionReader, SectionRole, type FieldSection, type SectionLimits } from './section.ts'
