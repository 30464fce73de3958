/*
 * Loads the WebAssembly code of assembly/. Each instance has its own memory
 * (docs/decisions/0056-a-scan-in-webassembly.md).
 */

/** A constant that the WebAssembly code exports to TypeScript. */
export type Constant = { readonly value: number }

export type Memory = { readonly buffer: ArrayBuffer; grow: (pages: number) => number }

/** The parts of WebAssembly that are used here. TypeScript declares them only in its browser types. */
declare const WebAssembly: {
  Module: new (code: Uint8Array) => object
  Instance: new (module: object) => { exports: object }
}

/**
 * Reads WebAssembly code.
 * @param code the code in base 64, as `npm run generate` writes it
 * @returns a function that makes an instance with its own memory. The first call compiles the code.
 */
export function readAssembly<Exports extends object>(code: string): () => Exports {
  let module: object | undefined
  return () => {
    module ??= new WebAssembly.Module(Buffer.from(code, 'base64'))
    return new WebAssembly.Instance(module).exports as Exports
  }
}
