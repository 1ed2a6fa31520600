/**
 * Completes dist/cjs, which has the same modules in CommonJS: says that they are, and gives them their types. Those are
 * the ones of the ES modules, word for word; a compiler takes them for CommonJS because of the package.json beside them.
 * The command line is a program, and only an ES module.
 */
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const DIST = fileURLToPath(new URL('../dist', import.meta.url))
const CJS = path.join(DIST, 'cjs')

for (const file of readdirSync(DIST, { recursive: true })) {
  if (!file.endsWith('.d.ts') || /^(cjs|cli)[\\/]/.test(file)) continue
  mkdirSync(path.dirname(path.join(CJS, file)), { recursive: true })
  copyFileSync(path.join(DIST, file), path.join(CJS, file))
}
writeFileSync(path.join(CJS, 'package.json'), '{ "type": "commonjs", "sideEffects": false }\n')

// `import.meta` does not exist there: the interface of the dashboard is found from where this module is.
writeFileSync(
  path.join(CJS, 'dashboard/location.js'),
  `"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.UI = void 0;
exports.UI = require("node:path").join(__dirname, "../../dashboard/ui");
`,
)
