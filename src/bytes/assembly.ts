/*
 * Code of assembly/, which works on bytes in a memory of its own
 * (docs/decisions/0056-a-scan-in-webassembly.md).
 */

/** A number that both sides count by. */
export type Constant = { readonly value: number }

export type Memory = { readonly buffer: ArrayBuffer; grow: (pages: number) => number }

/** The parts of the engine's WebAssembly that are used. Its types come only with those of browsers. */
declare const WebAssembly: {
  Module: new (code: Uint8Array) => object
  Instance: new (module: object) => { exports: object }
}

/**
 * @param code in base 64, as `npm run generate` writes it
 * @returns one that makes an instance of it, with a new memory; it is compiled for the first
 */
export function readAssembly<Exports extends object>(code: string): () => Exports {
  let module: object | undefined
  return () => {
    module ??= new WebAssembly.Module(Buffer.from(code, 'base64'))
    return new WebAssembly.Instance(module).exports as Exports
  }
}
