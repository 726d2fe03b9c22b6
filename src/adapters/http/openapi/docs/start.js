// In embedded mode, users of this machine get a demo key. Everyone else gets an object without one.
const demoKey = await (await fetch('docs/demo-key.json')).json()

// By default, Scalar loads fonts, sends telemetry and offers its hosted services. All of these are off.
Scalar.createApiReference('#reference', {
  url: new URL('openapi.json', location.href).href,
  // Requests go to the origin of this page instead of the document's server URL: the Content-Security-Policy allows no other origin.
  servers: [{ url: new URL('v1', location.href).href }],
  authentication: { preferredSecurityScheme: 'apiKey', securitySchemes: { apiKey: { token: demoKey.secret ?? '' } } },
  defaultOpenAllTags: true,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
})
