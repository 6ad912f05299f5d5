/** Which route a request takes. */
export { hostOf, Router, type RouteRefusal } from './router.ts'
export { isNormalPath, isPlainPath, readPath, type PathReadings } from './path.ts'
