import fastJson from 'fast-json-stringify'
import { createSchema } from 'zod-openapi'
import type { z } from 'zod'

/** Compiles a writer for one schema: fields it does not name are left out, and bigints are written digit for digit. */
export function makeSerializer<Value>(schema: z.ZodType): (value: Value) => string {
  const { schema: json, components } = createSchema(schema, { io: 'output', schemaRefPath: '#/definitions/' })
  return fastJson({ ...json, definitions: components } as fastJson.AnySchema)
}
