/**
 * The same server and options, another database. Who logs in goes on doing so at the database that the URL named before, or at
 * `admin`, because the database in a URL is also where its user is looked up.
 */
export function withDatabase(url: string, database: string): string {
  const [, server, userPart, path = '', query = ''] = /^(mongodb(?:\+srv)?:\/\/([^/?@]*@)?[^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url) ?? []
  // The URL may hold a password, so that it is not for an error message.
  if (server === undefined) throw new Error('MONGODB_URL is not a MongoDB URL')

  const options = new URLSearchParams(query)
  const mechanism = options.get('authMechanism') ?? 'SCRAM'
  const needsAuthSource = userPart !== undefined && !options.has('authSource') && mechanism.startsWith('SCRAM')
  const authSource = needsAuthSource ? [`authSource=${path || 'admin'}`] : []
  const newQuery = [...(query === '' ? [] : [query]), ...authSource].join('&')
  return `${server}/${database}${newQuery === '' ? '' : `?${newQuery}`}`
}
