import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Middleware } from './context.js'
import { DOCS_CONTENT_SECURITY_POLICY } from './hardening.js'
import type { OpenApiFacts } from './openapi.js'
import { openApiText } from './openapi.js'
import type { ServicePage } from './routes.js'

/** Scalar would fetch fonts, send telemetry and offer its hosted services: all of that is off, and the policy forbids it besides. */
const SCALAR_SETTINGS = {
  url: '/openapi.json',
  defaultOpenAllTags: true,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
}

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pet Store API</title>
<link rel="icon" href="data:,">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The same is at <a href="/openapi.yaml">/openapi.yaml</a>.</noscript>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const START = `Scalar.createApiReference('#reference', ${JSON.stringify(SCALAR_SETTINGS)})\n`

/** The OpenAPI document in two formats, and a page that shows it with nothing fetched from elsewhere. Each is made at its first request. */
export function documentPages(facts: OpenApiFacts): ServicePage[] {
  const scalar = () => readFileSync(createRequire(import.meta.url).resolve('@scalar/api-reference/browser/standalone.js'), 'utf8')
  return [
    page('/openapi.json', 'application/json', () => openApiText(facts, 'json')),
    page('/openapi.yaml', 'application/yaml', () => openApiText(facts, 'yaml')),
    page('/docs', 'text/html; charset=utf-8', () => PAGE, { 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }),
    page('/docs/start.js', 'text/javascript; charset=utf-8', () => START),
    page('/docs/scalar.js', 'text/javascript; charset=utf-8', scalar, { 'Cache-Control': 'public, max-age=3600' }),
  ]
}

function page(path: string, type: string, make: () => string, headers: Record<string, string> = {}): ServicePage {
  let text: string | undefined
  const handle: Middleware = async (ctx) => {
    text ??= make()
    ctx.set({ 'Content-Type': type, ...headers })
    ctx.body = text
  }
  return { path, handle }
}
