import { exchangeConformance } from './conformance.ts'
import { http3Protocol } from './h3-protocol.ts'

exchangeConformance('h3', http3Protocol)
