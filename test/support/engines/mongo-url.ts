/**
 * The same URL with another database. Users still authenticate against the database that the URL named before (`admin` by default),
 * because MongoDB looks up a user in the database of the URL.
 */
export function withDatabase(url: string, database: string): string {
  const [, server, userPart, path = '', query = ''] = /^(mongodb(?:\+srv)?:\/\/([^/?@]*@)?[^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url) ?? []
  // The URL may contain a password, so the error does not contain the URL.
  if (server === undefined) throw new Error('MONGODB_URL is not a MongoDB URL')

  const options = new URLSearchParams(query)
  const mechanism = options.get('authMechanism') ?? 'SCRAM'
  const needsAuthSource = userPart !== undefined && !options.has('authSource') && mechanism.startsWith('SCRAM')
  const authSource = needsAuthSource ? [`authSource=${path || 'admin'}`] : []
  const newQuery = [...(query === '' ? [] : [query]), ...authSource].join('&')
  return `${server}/${database}${newQuery === '' ? '' : `?${newQuery}`}`
}
