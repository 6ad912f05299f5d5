// Plain JavaScript, so that even an old Node can say what is wrong. Runs before start, test and bench.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`Heddle's sources need Node >= 22.18 and npm ci brings Node 26 along; this is Node ${process.versions.node}.
No Node from the registry was installed for ${process.platform}-${process.arch}: run "npm ci" without --omit=optional, or use a newer Node of your own.`)
  process.exit(1)
}
