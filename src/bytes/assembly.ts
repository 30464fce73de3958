/*
 * Loads the code of assembly/, which works on bytes in a memory of its own (docs/decisions/0056-a-scan-in-webassembly.md).
 */

/** A constant that both sides know. */
export type Constant = { readonly value: number }

export type Memory = { readonly buffer: ArrayBuffer; grow: (pages: number) => number }

/** The parts of WebAssembly that are used here. TypeScript has its types only with those of browsers. */
declare const WebAssembly: {
  Module: new (code: Uint8Array) => object
  Instance: new (module: object) => { exports: object }
}

/**
 * @param code in base 64, as `npm run generate` writes it
 * @returns a function that makes an instance with a memory of its own. The first call compiles the code.
 */
export function readAssembly<Exports extends object>(code: string): () => Exports {
  let module: object | undefined
  return () => {
    module ??= new WebAssembly.Module(Buffer.from(code, 'base64'))
    return new WebAssembly.Instance(module).exports as Exports
  }
}
