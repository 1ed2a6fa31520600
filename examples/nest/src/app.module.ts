import { Module } from '@nestjs/common'
import { link } from 'oncebox/link'
import { OnceboxModule } from 'oncebox/nest'
import type { Database } from '../../database.mjs'
import { DATABASE, DatabaseModule, SHOP, WAREHOUSE } from './database.module.js'
import { messages, ShopBox, WarehouseBox } from './messages.js'
import { Orders } from './orders.js'
import { ReserveStock } from './reserve-stock.js'

const logger = { debug() {}, info() {}, warn() {}, error() {} }

@Module({
  imports: [
    DatabaseModule,
    OnceboxModule.forRootAsync({
      name: WarehouseBox,
      imports: [DatabaseModule],
      inject: [DATABASE],
      useFactory: ({ driver: db }: Database) => ({ db, messages, schema: WAREHOUSE, migrate: true, logger }),
    }),
    OnceboxModule.forRootAsync({
      name: ShopBox,
      imports: [DatabaseModule],
      inject: [DATABASE, WarehouseBox],
      useFactory: ({ driver: db }: Database, warehouse: WarehouseBox) => ({
        ...{ db, messages, schema: SHOP, source: 'shop', migrate: true },
        // What leaves the outbox of the shop arrives in the inbox of the warehouse. A broker would stand here.
        setUp: (box) => box.to(link({ to: warehouse })),
      }),
    }),
  ],
  providers: [Orders, ReserveStock],
})
export class AppModule {}
