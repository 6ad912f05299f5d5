/** True for `application/grpc` and its codings (`application/grpc+proto`); not for gRPC-Web, which has a framing of its own. */
export function isGrpcType(type: string): boolean {
  if (!type.startsWith('application/grpc')) return false
  const next = type.charCodeAt(16)
  // The end, `+`, `;` or a blank.
  return Number.isNaN(next) || next === 0x2b || next === 0x3b || next === 0x20
}
