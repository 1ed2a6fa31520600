/** Lets the command line be run as a program where it was built: npm does so only where it installs. */
import { chmodSync } from 'node:fs'

chmodSync(new URL('../dist/cli/main.js', import.meta.url), 0o755)
