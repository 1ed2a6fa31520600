/** A health indicator for @nestjs/terminus. */
import { Inject, Injectable } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import { HealthIndicatorService } from '@nestjs/terminus'
import type { Box } from '../box.js'
import type { Health } from '../health.js'
import type { MessageMap } from '../message.js'
import { getBoxToken, type BoxName } from './tokens.js'

export interface OnceboxHealthOptions {
  /** Which box, if there is more than one. */
  box?: BoxName | undefined
  /** Down when the oldest message that is due has waited for longer. */
  maxLagMs?: number | undefined
}

export type OnceboxHealthResult<Key extends string> = Record<Key, { status: 'up' | 'down' } & Omit<Health, 'ok'>>

/**
 * @example
 * health.check([() => oncebox.isHealthy('oncebox')])
 */
export class OnceboxHealthIndicator {
  readonly #boxes: ModuleRef
  readonly #health: HealthIndicatorService

  constructor(boxes: ModuleRef, health: HealthIndicatorService) {
    this.#boxes = boxes
    this.#health = health
  }

  /** Up or down as `box.health()` is ok or not, with the rest of its answer. */
  async isHealthy<const Key extends string = 'oncebox'>(
    key: Key = 'oncebox' as Key,
    { box: name, ...limits }: OnceboxHealthOptions = {},
  ): Promise<OnceboxHealthResult<Key>> {
    const box = this.#boxes.get<Box<MessageMap, unknown>>(getBoxToken(name), { strict: false })
    const { ok, ...detail } = await box.health(limits)
    const indicator = this.#health.check(key)
    return ok ? indicator.up(detail) : indicator.down(detail)
  }
}
Injectable()(OnceboxHealthIndicator)
Inject(ModuleRef)(OnceboxHealthIndicator, undefined, 0)
Inject(HealthIndicatorService)(OnceboxHealthIndicator, undefined, 1)
