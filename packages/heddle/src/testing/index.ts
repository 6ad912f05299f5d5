/**
 * A deterministic world to test protocols in: one clock, one seed, links that delay, cut and break,
 * and tools to look at engines from both sides.
 */
export { makeAuthority, makeCertificate, type Certificate, type CertificateOptions } from './certificate.ts'
export { exchangeConformance, type ConformanceOptions } from './conformance.ts'
export { Side, WatchedExchange, type SendPlan } from './conformance/side.ts'
export {
  Stage,
  streamProtocol,
  type CaseOptions,
  type ConformanceCase,
  type ConformanceLimits,
  type ConformancePair,
  type ConformanceProtocol,
  type ConnectOptions,
} from './conformance/stage.ts'
export { EngineLoop, type EngineLoopOptions, type EngineSink } from './engine-loop.ts'
export { type WorldEvent } from './events.ts'
export { Http2Peer, http2Frames, type WantedFrame } from './h2-peer.ts'
export { Http3Probe, ProbeStream, type Http3ProbeOptions, type ProbeAnswer } from './http3-probe.ts'
export { ErrorCode as Http3Code, StreamType as Http3StreamType } from '../h3/index.ts'
export { literalBlock, preface as http2Preface, type DebugFrame } from '../h2/index.ts'
export { collectGarbage, memoryNow } from './leaks.ts'
export { Link, type LinkOptions } from './link.ts'
export { LinkSocket } from './link-socket.ts'
export { connection, connectionInfo, Network, type HostOptions, type WorldConnection, type WorldListener } from './network.ts'
export { enginePair, pair, type ConnectionEngine, type EngineFactory, type LinkedPair, type Pair, type PairOptions } from './pair.ts'
export { PlainCrypto } from './plain-crypto.ts'
export { plainSecret, PlainTls, type PlainTlsOptions } from './plain-tls.ts'
export { QuicForger, type ForgedEnd, type ForgedPacket } from './quic-forger.ts'
export { RecordingApplication } from './quic-pair.ts'
export { clientAddress, Echo, echoing, packetTypes, QuicWorld, silent, type Flight, type QuicWorldOptions } from './quic-world.ts'
export { Random } from './random.ts'
export {
  Recording,
  RecordingConnection,
  recordingConnection,
  recordingHandler,
  type RecordedCall,
  type RecordingConnectionOptions,
  type RecordingOptions,
} from './recording.ts'
export {
  FramePeer,
  script,
  ScriptedPeer,
  scriptOnLink,
  socketTransport,
  type FrameCodec,
  type PeerTransport,
  type Script,
  type ScriptOptions,
  type Wanted,
} from './script.ts'
export { runSeeds, worldTest, type WorldTestOptions } from './seeds.ts'
export { NetworkListener } from './world-listener.ts'
export { alarm, World, type RunOptions, type WorldOptions } from './world.ts'
