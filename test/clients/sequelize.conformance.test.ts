import { describe } from 'vitest'
import { conformanceOf, OLD_PG } from './suite.js'
import { installed } from './versions.js'

const oldest = () => installed('sequelize@6.31.0', 'pg@8.11.0')

describe('Sequelize 6.37', () => conformanceOf({ name: 'sequelize' }))
describe('Sequelize 6.31', () => conformanceOf({ name: 'sequelize', from: oldest }, OLD_PG))
