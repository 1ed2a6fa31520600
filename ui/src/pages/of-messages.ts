/** Loaded together: a message is opened from a list of them. */
export { MessagePage } from './message.js'
export { MessagesPage } from './messages.js'
