import type { RawJson } from '../../bytes/json.ts'
import { beginsWith, joinTexts, type Text } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import { sha256Hex } from '../../ids.ts'
import type { DocumentPart, ImagePart, InferenceRequest, ToolResultPart } from '../../inference/request.ts'
import { withObjectType } from '../../inference/schema.ts'
import type { Losses } from './losses.ts'
import { refuse } from './refusals.ts'

/*
 * Replacements for parts of a request that a wire or a model cannot express. They are the same for all wires. A part
 * without a replacement is refused.
 */

/** Returns a tool result's text. If the tool failed, the text says so, because the wire has no field for it (R-RES). */
export function failedText(result: ToolResultPart, text: Text): Text {
  if (!result.isError) return text
  if (text === '') return 'Error: tool call failed'
  return beginsWith(text, 'error') ? text : joinTexts(['Error: ', text], '')
}

/** The parts of a tool result. If the tool has failed, the first text says so. */
export function failedParts(result: ToolResultPart): ToolResultPart['parts'] {
  if (!result.isError) return result.parts
  const first = result.parts.findIndex((part) => part.type === 'text')
  const part = result.parts[first]
  const text = failedText(result, part?.type === 'text' ? part.text : '')
  return [{ type: 'text', text }, ...result.parts.filter((_, index) => index !== first)]
}

/** A text document as plain text, for upstreams without files: its title, then its text (R-DOC). */
export function inlineText(document: DocumentPart): string {
  return document.title ? `${document.title}\n${document.text ?? ''}` : (document.text ?? '')
}

export function refuseImages(profile: Profile, { at }: ImagePart) {
  if (!profile.images) refuse(at, 'this model takes no images: remove it, or name another model.')
}

export function refuseFiles(profile: Profile, { at }: DocumentPart) {
  if (!profile.files) refuse(at, 'this model takes no files: send its text instead, or name another model.')
}

/**
 * Shortens the id of the client's user. An id of more than 64 characters becomes a digest, because upstreams of two
 * wires refuse longer ids (R-WHO).
 */
export function shortId(id: string | undefined): string | undefined {
  return id !== undefined && id.length > 64 ? sha256Hex(id) : id
}

/**
 * Returns the only id of the client's user, for a model that takes no safety id (R-WHO). If the client sent both, the
 * safety id is lost.
 */
export function oneId({ user, safetyId, either }: InferenceRequest['identity'], losses: Losses): string | undefined {
  if (user !== undefined && safetyId !== undefined)
    losses.add('safety_identifier', 'dropped', 'the model does not take it')
  return shortId(user ?? safetyId ?? either)
}

/**
 * Returns the id, or its digest if the id could identify a person. Upstreams refuse such ids with 400 ("user_id appears
 * to contain an email address").
 */
export function opaqueId(id: string): string {
  return id.includes('@') || id.length > 256 ? sha256Hex(id) : id
}

/** The schema of a tool without arguments (R-SCHEMA). */
const emptySchema = '{"type":"object","properties":{}}'

export function toolSchema(schema: RawJson | undefined): RawJson {
  return schema ? withObjectType(schema) : { source: emptySchema }
}

/** The name of an output schema. If the client's wire has no name, one is invented (R-JSON). */
export function formatName(name: string | undefined): string {
  return name ? name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) : 'output'
}
