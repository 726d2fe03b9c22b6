import fastJson from 'fast-json-stringify'
import { createSchema } from 'zod-openapi'
import type { z } from 'zod'

/** Compiles a function that writes a value as JSON. Omits fields that the schema does not have, and writes bigints with all digits. */
export function makeSerializer<Value>(schema: z.ZodType): (value: Value) => string {
  const { schema: json, components } = createSchema(schema, { io: 'output', schemaRefPath: '#/definitions/' })
  return fastJson({ ...json, definitions: components } as fastJson.AnySchema)
}
