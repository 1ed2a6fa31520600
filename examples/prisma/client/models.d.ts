export type * from './models/Order.js';
export type * from './models/Invoice.js';
export type * from './models/Effect.js';
export type * from './commonInputTypes.js';
