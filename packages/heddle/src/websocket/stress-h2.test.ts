import { stress } from './interleaving.test.ts'

stress('h2', 1000, 50)
