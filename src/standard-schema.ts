/**
 * The Standard Schema interface (version 1) that zod, valibot, arktype and others implement.
 * Kept here as types so that the core has no dependency; it is structural, so any implementation fits.
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (
      value: unknown,
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- vendors differ in what they take here
      options?: any,
    ) => StandardSchemaV1.Result<Output> | Promise<StandardSchemaV1.Result<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export declare namespace StandardSchemaV1 {
  export type Result<Output> =
    { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] }
  export interface Issue {
    readonly message: string
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
  }
  export type InferInput<S extends StandardSchemaV1> = NonNullable<S['~standard']['types']>['input']
  export type InferOutput<S extends StandardSchemaV1> = NonNullable<S['~standard']['types']>['output']
}
