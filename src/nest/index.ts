/** oncebox in a Nest app: a module with a box, consumers as classes, handlers as methods. */
export {
  Consumer,
  decorators,
  Handle,
  HandleBatch,
  type Decorators,
  type HandleDecorator,
  type MakeAnyHandle,
  type MakeConsumer,
  type MakeHandle,
  type MakeHandleBatch,
} from './decorators.js'
export { type MessageRequest } from './handlers.js'
export { OnceboxModule } from './module.js'
export type {
  LifecycleOptions,
  OnceboxModuleAsyncOptions,
  OnceboxModuleOptions,
  OnceboxOptions,
  OnceboxOptionsFactory,
} from './options.js'
export { boxClass, getBoxToken, InjectBox, type BoxClass, type BoxName } from './tokens.js'
