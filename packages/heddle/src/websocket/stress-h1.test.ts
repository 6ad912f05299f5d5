import { stress } from './interleaving.test.ts'

stress('h1', 1000, 50)
