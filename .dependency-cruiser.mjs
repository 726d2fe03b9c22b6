// DESIGN §8's import rules. `npm run check:architecture` applies them to src, and test/system/architecture.test.ts plants a violation of each.

/** A rule over an empty folder never fails, so each of these has to hold a file. A new adapter's folder joins with its first file. */
export const inhabited = [
  'src/core/',
  'src/core/ports/',
  'src/core/use-cases/',
  'src/adapters/cli/',
  'src/adapters/http/',
  'src/adapters/memory/',
  'src/adapters/mongo/',
  'src/adapters/node/',
  'src/adapters/redis/',
  'src/config.ts',
  'src/container.ts',
  'src/main.ts',
]

/** main.ts parses the arguments and loads the file of the command. */
const ENTRY_POINTS = '^src/(main|service|commands)[.]ts$'

const packages = (...names) => `(^|/)node_modules/(@types/)?(${names.join('|')})(/|$)|^(${names.join('|')})(/|$)`

const rules = [
  {
    name: 'core-imports-only-core',
    comment: 'The core is plain TypeScript: no node: module, no package and no adapter, not even for a type.',
    from: { path: '^src/core/' },
    to: { pathNot: '^src/core/' },
  },
  {
    name: 'adapters-import-only-core-and-their-own-folder',
    comment: 'So that http never knows which store it speaks to. Whether config.ts may be imported is the business of a rule of its own.',
    from: { path: '^src/adapters/([^/]+)/' },
    to: { path: '^src/', pathNot: ['^src/core/', '^src/adapters/$1/', '^src/config[.]ts$'] },
  },
  {
    name: 'only-entry-points-import-the-command-line',
    comment: 'The command line is a way in, like main.ts and what it loads: nothing else builds upon it.',
    from: { pathNot: [ENTRY_POINTS, '^src/adapters/cli/'] },
    to: { path: '^src/adapters/cli/' },
  },
  {
    name: 'only-entry-points-import-the-container',
    comment: 'A part that can reach the container can reach everything. Nothing imports main.ts, which starts the process.',
    from: { pathNot: ENTRY_POINTS },
    to: { path: ['^src/container[.]ts$', ENTRY_POINTS] },
  },
  {
    name: 'only-wiring-and-command-line-import-the-settings',
    comment: 'Core and adapters are handed the values they need, so that a test can hand them others.',
    from: { pathNot: ['^src/container[.]ts$', ENTRY_POINTS, '^src/adapters/cli/'] },
    to: { path: '^src/config[.]ts$' },
  },
  {
    name: 'koa-stays-in-http',
    comment: 'HTTP is one adapter, and Koa is its secret.',
    from: { pathNot: '^src/adapters/http/' },
    to: { path: packages('koa', 'koa-[^/]+', '@koa/[^/]+') },
  },
  {
    name: 'inversify-stays-in-container-and-adapters',
    comment: 'Wiring happens in container.ts; adapters may carry decorators.',
    from: { pathNot: ['^src/container[.]ts$', '^src/adapters/'] },
    to: { path: packages('inversify', '@inversifyjs/[^/]+') },
  },
  {
    name: 'mongodb-stays-in-its-adapter',
    comment: 'No type of the driver passes a port.',
    from: { pathNot: '^src/adapters/mongo/' },
    to: { path: packages('mongodb', 'bson') },
  },
  {
    name: 'ioredis-stays-in-its-adapter-and-container',
    comment: 'The container makes the connections that the adapter is handed.',
    from: { pathNot: ['^src/adapters/redis/', '^src/container[.]ts$'] },
    to: { path: packages('ioredis', '@ioredis/[^/]+') },
  },
  {
    name: 'only-settings-import-process',
    comment: 'Importing node:process would be a way around the check that only config.ts reads process.env.',
    from: { pathNot: '^src/config[.]ts$' },
    to: { path: '^(node:)?process$' },
  },
  {
    name: 'source-imports-only-what-ships',
    comment: 'Development packages, undeclared packages, tests and scripts are not there in production.',
    from: { path: '^src/' },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  },
  {
    name: 'source-imports-no-tests',
    from: { path: '^src/' },
    to: { path: '^(test|bench|scripts|dist)/' },
  },
  {
    name: 'imports-resolve',
    comment: 'A specifier that leads nowhere escapes every other rule.',
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: 'no-cycles',
    comment: 'Type-only imports count: a cycle of types is still two files that cannot be read one after the other.',
    from: {},
    to: { circular: true },
  },
]

export default {
  forbidden: rules.map((rule) => ({ severity: 'error', ...rule })),
  options: {
    // TypeScript 7 has no JavaScript API, and swc sees type-only imports as well.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
