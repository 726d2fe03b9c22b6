// Checks src against the import rules in .dependency-cruiser.mjs and prints each violation.
import { findArchitectureViolations } from '../dist/test/support/architecture.js'

const violations = await findArchitectureViolations(process.cwd())
for (const { rule, file, detail } of violations) console.error(`${file} ${detail} (${rule})`)
if (violations.length > 0) {
  console.error(`${violations.length} violations of the import rules in .dependency-cruiser.mjs`)
  process.exitCode = 1
}
