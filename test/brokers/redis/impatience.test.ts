import { impatience } from '../impatience.js'

impatience(new URL('./adapter.mjs', import.meta.url))
