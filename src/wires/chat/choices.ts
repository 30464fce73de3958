/** So many answers a request may ask for, as the wire's author has it. */
export const choicesMax = 128
