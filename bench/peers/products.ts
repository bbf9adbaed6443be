import { convoy } from './convoy.ts'
import { outpost } from './outpost.ts'
import type { Product } from './product.ts'
import { signalbox } from './signalbox.ts'
import { svix } from './svix.ts'

/** The products that a load can be sent to, by name. */
export const PRODUCTS = { signalbox, svix, outpost, convoy } satisfies Record<string, Product>

export type ProductName = keyof typeof PRODUCTS
