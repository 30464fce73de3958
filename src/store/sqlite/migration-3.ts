/**
 * From 2 to 3: prices with steps and calls of hosted tools (ruling C11). What is there has neither, so nothing is written anew
 * and every digest stays.
 */
export const addSteppedPrices = `
  ALTER TABLE prices ADD COLUMN terms TEXT;  -- steps and calls as JSON; null where there are none
  ALTER TABLE entries ADD COLUMN calls TEXT; -- priced calls by their kinds; null where there are none
`
