import { exchangeConformance } from './conformance.ts'
import { http3OverQuic, unavailable } from './h3-over-quic.ts'

if (unavailable === false) exchangeConformance('h3 over QUIC', http3OverQuic, { seeds: 2 })
