/** Packages that are no devDependencies: see tools/installed.mjs. */
export { installed, type Installed } from '../../tools/installed.mjs'
