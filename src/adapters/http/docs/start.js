// By default, Scalar fetches fonts, sends telemetry and offers its hosted services. All of that is off here.
Scalar.createApiReference('#reference', {
  url: new URL('openapi.json', location.href).href,
  // Requests go to the origin of this page, the only one that its Content-Security-Policy allows, whatever server URL the document names.
  servers: [{ url: new URL('v1', location.href).href }],
  defaultOpenAllTags: true,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
})
