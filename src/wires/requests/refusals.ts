import { type ErrorDetail, GatewayError } from '../../errors.ts'

/*
 * Refusals of a client's fields, in the same words whatever the model's wire (ruling R9). Each has the place, the
 * mistake and the cure. A place is a path into the body, such as `messages[3].content[1].text`. It contains only
 * numbers and field names of our tables, nothing written by the client (spec 7.1). `param` is the top-level field of
 * the path.
 */

/** Makes the error for a field. @param message the whole text @param details further facts that SDKs read */
export function invalidField(path: string, message: string, details?: ErrorDetail['details']): GatewayError {
  return new GatewayError('invalid_body', message, { param: topLevel(path), ...(details && { details }) })
}

export function wrongType(path: string, type: string): GatewayError {
  return invalidField(path, `The field ${path} must be ${type}.`)
}

/**
 * Refuses the value at a path.
 * @param text the mistake at this path, and its cure
 * @param param the top-level field for the error's `param`. Default: the first part of the path
 * @throws GatewayError 400 `invalid_body`
 */
export function refuse(path: string, text: string, param = topLevel(path)): never {
  throw new GatewayError('invalid_body', `${path}: ${text}`, { param })
}

function topLevel(path: string): string {
  return path.split(/[.[]/, 1)[0]!
}

/** Refusals that several places share (rulings T3, T6, T9). */
export const refusals = {
  hostedTool:
    'this tool is not offered on this model: send function tools only. An agent that adds web search by itself has a setting for it, e.g. web_search = "disabled".',
  messagesTool:
    'this is a tool in the shape of another wire: here it is {"name": …, "description": …, "input_schema": {…}}.',
  chatTool:
    'this is a tool in the shape of another wire: here it is {"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}.',
  responsesTool:
    'this is a tool in the shape of another wire: here it is {"type": "function", "name": …, "description": …, "parameters": {…}}.',
  messagesChoice:
    'must be an object here: {"type": "auto"}, {"type": "any"}, {"type": "none"} or {"type": "tool", "name": …}.',
  wordChoice: 'must be "auto", "none" or "required" here, or an object that names a function tool.',
  hostedChoice: 'the choice must name a function tool: this model has no other tools.',
  remoteFile: 'files and images are not fetched: send the data itself, in base64.',
  storedFile: 'this model is not given what its provider stores: send the data itself.',
} as const
